// Package nstest gives a package's tests a network of their own, so that they send real packets and write real rules
// without touching the host's, whether root or an ordinary user runs them.
//
// A test package hands its TestMain to [Main]; each test that needs the network calls [Require]. Invariant: a test
// that has passed Require is not in the network namespace of whoever started the tests.
package nstest
