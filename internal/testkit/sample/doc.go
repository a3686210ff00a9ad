// Package sample is one Service to begin with: default/web on node-a of two nodes, for tests of what is made of it.
package sample
