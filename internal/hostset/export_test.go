package hostset

// Read is what the machine is like.
func Read() Facts { return here.facts() }
