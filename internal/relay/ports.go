package relay

// Ports are those at which Targets are listened at that rules lead to.
func (s *Server) Ports() map[Key]uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ports := make(map[Key]uint16, len(s.targets))
	for k, e := range s.targets {
		if !k.Direct {
			ports[k] = e.listen.Port()
		}
	}
	return ports
}
