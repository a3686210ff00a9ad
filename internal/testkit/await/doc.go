// Package await has a test wait until something is so, for as long as a busy machine may need.
package await
