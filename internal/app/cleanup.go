package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"sluice/internal/kernel/instance"
)

// CleanupOptions are what to remove.
type CleanupOptions struct {
	// KeepKubeProxy spares what kube-proxy may be using. Sluice's chains of iptables bear kube-proxy's names and are its
	// own from its next sync on, so they are spared as well.
	KeepKubeProxy bool
	// ExcludeCIDRs are ranges of addresses where virtual servers stay that may be others'.
	ExcludeCIDRs []netip.Prefix
}

// Cleanup removes all that is ours from this kernel, of every mode, and prints what that was. What one mode cannot
// remove keeps the others from nothing.
func Cleanup(ctx context.Context, o CleanupOptions, out io.Writer) (err error) {
	if err := needRoot("cleanup"); err != nil {
		return err
	}
	claim, err := instance.Take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claim.Close()) }()
	l := leftovers{routeLocalnet: setRouteLocalnet, keepKubeProxy: o.KeepKubeProxy, excluded: o.ExcludeCIDRs}
	var errs []error
	found := false
	for _, m := range modes() {
		removed, err := m.cleanup(ctx, l)
		errs = append(errs, err)
		for _, what := range removed {
			found = true
			_, err := fmt.Fprintln(out, "removed:", what)
			errs = append(errs, err)
		}
	}
	if !found && errors.Join(errs...) == nil {
		_, err := fmt.Fprintln(out, "nothing to remove")
		return err
	}
	return errors.Join(errs...)
}
