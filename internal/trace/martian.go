package trace

// Martian is the end of a packet from the network to a loopback address, wherever the rules would send it.
func Martian() Result {
	return Result{
		Verdict:   Drop,
		Endpoints: []Endpoint{},
		Steps: []Step{{
			At:   "kernel, on arrival",
			Says: "a packet from the network to a loopback address is dropped, unless route_localnet allows it",
		}},
	}
}
