// Package ipvs tries mode ipvs with real connections, for what no other mode has: schedulers do what their names say,
// endpoints that go keep their connections, virtual servers of others stay, and all of that when daemons are killed.
//
// Its tests need a kernel with ip_vs; make test-vm runs them where there is none.
package ipvs
