package bench_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// asLister in the environment makes the test program be one that lists, with that kubeconfig.
const asLister = "SLUICE_BENCH_LIST"

// listing is what a bare list took a process of its own, from its start to its end.
type listing struct {
	cpu, elapsed time.Duration
	peak         int64 // bytes
}

// list measures what nobody who reads the API can do without.
func (a *arena) list() listing {
	a.Helper()
	var all []listing
	for range listings {
		cmd := a.Lab.Host("control").Command(a.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), asLister+"="+a.Folder+"/admin.kubeconfig")
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			a.Fatalf("list: %v\n%s", err, out)
		}
		l := listing{elapsed: time.Since(start)}
		used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		l.cpu, l.peak = time.Duration(used.Utime.Nano()+used.Stime.Nano()), used.Maxrss<<10
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b listing) int { return cmp.Compare(a.cpu, b.cpu) })
	return all[len(all)/2]
}

// beLister is that process. It keeps the objects as they are decoded.
func beLister(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fromCache := metav1.ListOptions{ResourceVersion: "0"}
	services, err := client.CoreV1().Services("").List(context.Background(), fromCache)
	if err != nil {
		return err
	}
	endpointSlices, err := client.DiscoveryV1().EndpointSlices("").List(context.Background(), fromCache)
	if err != nil {
		return err
	}
	fmt.Println(len(services.Items), len(endpointSlices.Items))
	return nil
}
