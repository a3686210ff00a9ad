package relay

import (
	"errors"
	"maps"
	"slices"
)

// Export lends the listening sockets of the Targets that which says, for the next process's Config.Inherited, and takes
// nothing from them any more: what waits in them is for that process. The others are listened at as they are until
// [Server.Stop], but no Target changes any more, unless that process ends and [Server.Resume] is called. What is being
// relayed goes on; Stop awaits its end. An error tells of sockets that are missing, which the next process has to make anew.
func (s *Server) Export(which func(Key) bool) ([]Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	var sockets []Socket
	var failed []error
	for _, k := range slices.SortedFunc(maps.Keys(s.targets), Key.Compare) {
		if !which(k) {
			continue
		}
		e := s.targets[k]
		delete(s.targets, k)
		s.lent[k] = e
		file, err := e.listener.lend()
		if err != nil {
			failed = append(failed, &BindError{k, e.listen, err})
			continue
		}
		sockets = append(sockets, Socket{k, e.listen, file})
	}
	return append(sockets, s.inherited.untaken(which)...), errors.Join(failed...)
}

// Resume is for when the process has died that sockets were lent to: all Targets are as they were before.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
	for k, e := range s.lent {
		s.targets[k] = e
		e.listener.Resume()
	}
	clear(s.lent)
}
