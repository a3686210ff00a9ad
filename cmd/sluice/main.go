// Command sluice makes Service addresses work on a Linux node.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sluice/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
