// Command control-plane is every part of a Kubernetes control plane in one binary, which saves link time and disk.
// The name it is called by, else its first argument, says which part runs: etcd, kube-apiserver,
// kube-controller-manager or kubectl. Nothing here is ours but the choice.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	kubectl "k8s.io/kubectl/pkg/cmd"

	// The metrics and the client metrics that the original mains register.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func run(part string) (exitCode int, known bool) {
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0, true
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand()), true
	case "kube-controller-manager":
		return cli.Run(controllermanager.NewControllerManagerCommand()), true
	case "kubectl":
		return cli.Run(kubectl.NewDefaultKubectlCommand()), true
	}
	return 2, false
}

func main() {
	exitCode, known := run(filepath.Base(os.Args[0]))
	if !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		exitCode, known = run(os.Args[0])
	}
	if !known {
		fmt.Fprintln(os.Stderr, "usage: control-plane etcd|kube-apiserver|kube-controller-manager|kubectl [arguments]")
	}
	os.Exit(exitCode)
}
