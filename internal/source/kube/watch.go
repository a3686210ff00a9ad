package kube

import "context"

func (c *Client) watch(ctx context.Context, node string, notify func(Change)) error {
	<-ctx.Done()
	return nil
}
