package app

import (
	"context"
	"fmt"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/source/manifest"
	"sluice/internal/status"
)

// manifests are files and folders.
type manifests struct {
	paths []string
	log   Log
	plan  plan.Config

	told bool // watch's alone
}

// manifestTopic is what problems of all manifests go by.
const manifestTopic = "manifests"

func (m *manifests) watch(ctx context.Context, pass func(reconcile.Event)) error {
	now := model.NewSnapshot()
	err := manifest.Watch(ctx, m.paths, func(next *model.Snapshot, problems []manifest.Problem) {
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.Error())
		}
		texts = append(texts, unserved(next)...)
		m.tellStart(next)
		pass(reconcile.Event{Input: &reconcile.Input{Delta: model.Diff(now, next)}, Problems: map[any][]string{manifestTopic: texts}})
		now = next
	})
	if err != nil {
		return fmt.Errorf("watch manifests: %w", err)
	}
	return nil
}

// tellStart says what the first reading found.
func (m *manifests) tellStart(s *model.Snapshot) {
	if m.told {
		return
	}
	m.told = true
	node := plan.Build(m.plan, plan.Host{}, &model.Snapshot{Nodes: s.Nodes}).Node
	m.log.Info("manifests read", "node", node.Name, "services", len(s.Services), "nodes", len(s.Nodes))
	if m.plan.DetectLocal == plan.DetectClusterCIDR && len(m.plan.ClusterCIDRs) == 0 {
		m.log.Info("no cluster CIDR is given: no client counts as a pod, and connections to cluster IPs keep their source")
	}
}

// tell has nobody to tell: problems show in the log and in status.
func (m *manifests) tell(event) {}

// eligible is always so: nobody can say otherwise.
func (m *manifests) eligible() bool { return true }

func (m *manifests) state() *status.API { return nil }
