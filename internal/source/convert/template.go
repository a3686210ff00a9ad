package convert

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"sluice/internal/model"
)

// PodTemplate is what a workload's Pods look like. It gives no endpoints: nothing says that such a Pod runs.
type PodTemplate struct {
	Name     model.Name // of the workload
	Kind     string     // of the workload
	Labels   map[string]string
	Ports    []ContainerPort
	Replicas int
}

// PodsOf is the template of the Pods of a ReplicationController, ReplicaSet or Deployment. Of anything else, and of
// a workload without a template, it is false.
func PodsOf(workload any) (PodTemplate, bool) {
	switch in := workload.(type) {
	case *corev1.ReplicationController:
		if in.Spec.Template == nil {
			return PodTemplate{}, false
		}
		return template("ReplicationController", NameOf(in.ObjectMeta), in.Spec.Replicas, in.Spec.Template), true
	case *appsv1.ReplicaSet:
		return template("ReplicaSet", NameOf(in.ObjectMeta), in.Spec.Replicas, &in.Spec.Template), true
	case *appsv1.Deployment:
		return template("Deployment", NameOf(in.ObjectMeta), in.Spec.Replicas, &in.Spec.Template), true
	}
	return PodTemplate{}, false
}

func template(kind string, name model.Name, replicas *int32, in *corev1.PodTemplateSpec) PodTemplate {
	t := PodTemplate{Name: name, Kind: kind, Labels: in.Labels, Ports: containerPorts(&in.Spec), Replicas: 1}
	if replicas != nil {
		t.Replicas = int(max(0, *replicas))
	}
	return t
}
