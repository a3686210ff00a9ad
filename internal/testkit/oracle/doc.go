// Package oracle holds what rules do to packets against what the plan says of them.
package oracle
