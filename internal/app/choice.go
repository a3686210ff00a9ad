package app

import "context"

// ChooseMode is the mode that Run works in where none is given: the best that the kernel of the calling thread's network
// namespace can do.
func ChooseMode(ctx context.Context) string {
	mode, _ := choose(ctx)
	return mode
}
