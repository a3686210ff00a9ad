// Package kill shows that kill -9 does no harm: the daemon is killed again and again, at random moments, while hundreds
// of Services change all the time. Services that do not change lose no connection, and whatever the last daemon left
// behind, the next one brings the kernel to where a fresh compile of the manifests would have it. In mode userspace, where
// connections go through the daemon, none fails from the moment on when the next one has started.
package kill
