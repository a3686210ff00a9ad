// Package golden compares texts with files that hold what is right. A test run with -update writes the files anew; look at
// the difference before it is committed.
package golden
