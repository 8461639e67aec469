package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeGrace is how long a node may be silent, as in a cluster: with less, a busy computer makes lost nodes.
const nodeGrace = 40 * time.Second

// controllers are those that a node, its certificates and its pods meet in a cluster. Of the approving one, a cluster
// uses only the part for renewals: bootstrap requests are approved by the cluster's machine approver, which does not
// run here.
var controllers = []string{
	"certificatesigningrequest-signing-controller", "certificatesigningrequest-cleaner-controller", "certificatesigningrequest-approving-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
	"node-lifecycle-controller", "taint-eviction-controller", "disruption-controller",
	"replicaset-controller", "deployment-controller", "daemonset-controller",
	"pod-garbage-collector-controller", "garbage-collector-controller", "namespace-controller",
}

// RestartControllers starts the controller manager and the scheduler again. After another API server was there, the
// garbage collector waits for kinds that are not served any longer.
func (c *ControlPlane) RestartControllers() error {
	for _, child := range c.children {
		if err := child.stop(); err != nil {
			return err
		}
	}
	c.children = nil
	return c.startControllers()
}

// startControllers starts the controller manager and the scheduler. Neither listens.
func (c *ControlPlane) startControllers() error {
	if err := c.bindRenewals(); err != nil {
		return err
	}
	serverCA := filepath.Join(c.folders.certificates, "ca.crt")
	if err := os.WriteFile(serverCA, c.Config.CAData, 0o600); err != nil {
		return err
	}
	common := []string{"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0"}
	for program, args := range map[string][]string{
		ControllerManager: {
			"--controllers=" + strings.Join(controllers, ","),
			"--cluster-signing-cert-file=" + c.clients.files[0], "--cluster-signing-key-file=" + c.clients.files[1],
			"--root-ca-file=" + serverCA, "--service-account-private-key-file=" + filepath.Join(c.folders.certificates, "sa-signer.key"),
			"--node-monitor-period=1s", "--node-monitor-grace-period=" + c.grace.String(),
		},
		Scheduler: nil,
	} {
		if program == Scheduler && !c.scheduled {
			continue
		}
		child, err := startChild(filepath.Join(c.programs, program), c.logs, append(args, common...))
		if err != nil {
			return err
		}
		c.children = append(c.children, child)
	}
	return nil
}

// bindRenewals lets nodes renew their client certificates, as a cluster does. The role is one of Kubernetes.
func (c *ControlPlane) bindRenewals() error {
	admin, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "wmco-testenv-renewals"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:nodes"}},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
		},
	}))
}

// child is a started program.
type child struct {
	*exec.Cmd
	ended chan error
}

// startChild starts a program that runs until stop.
func startChild(path string, logs *os.File, args []string) (*child, error) {
	c := &child{exec.CommandContext(context.Background(), path, args...), make(chan error, 1)}
	c.Stdout, c.Stderr = logs, logs
	// An interrupt on the terminal reaches only this program, which stops the others.
	c.SysProcAttr = ownGroup()
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() { c.ended <- c.Wait() }()
	return c, nil
}

// stop ends the program. That it had ended before is an error.
func (c *child) stop() error {
	select {
	case err := <-c.ended:
		return fmt.Errorf("%s ended before it was stopped: %w", filepath.Base(c.Path), err)
	default:
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended: //nolint:errcheck // it ended as it was told
		return nil
	case <-time.After(Patience):
		return errors.Join(fmt.Errorf("%s does not stop", filepath.Base(c.Path)), c.Process.Kill())
	}
}
