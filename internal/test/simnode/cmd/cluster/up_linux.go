package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/internal/test/registrytest"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv/controlplane"
	"wmco/internal/test/testenv/manifests"
)

// sshPort is the port of the machines' SSH servers.
const sshPort = "22"

// operatorAccount is the ServiceAccount of deploy/rbac.
const operatorAccount = "windows-machine-config-operator"

// running is what was started, to be ended in the opposite order.
type running struct {
	scene
	log  *slog.Logger
	ends []func() error
}

func (r *running) atEnd(end func() error) { r.ends = append(r.ends, end) }

func (r *running) end() error {
	var errs []error
	for i := len(r.ends) - 1; i >= 0; i-- {
		errs = append(errs, r.ends[i]())
	}
	return errors.Join(errs...)
}

func (s scene) up(ctx context.Context) (err error) {
	r := &running{scene: s}
	defer func() { err = errors.Join(err, r.end()) }()
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(s.folder, "machines.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r.atEnd(file.Close)
	r.log = slog.New(slog.NewTextHandler(file, nil))
	key, err := r.newKey()
	if err != nil {
		return err
	}
	// The machines end first: an API server waits a minute for its clients.
	if err := r.startCluster(ctx, key); err != nil {
		return err
	}
	if err := r.startMachines(ctx, key.signer); err != nil {
		return err
	}
	fmt.Println("ready")
	return waitForStdin(ctx)
}

// identity is the key that the operator logs in with.
type identity struct {
	signer ssh.Signer
	pem    []byte
}

func (r *running) newKey() (identity, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return identity{}, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return identity{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return identity{}, err
	}
	i := identity{signer, pem.EncodeToMemory(block)}
	file := filepath.Join(r.folder, "identity")
	fmt.Println("identity", file)
	return i, os.WriteFile(file, i.pem, 0o600)
}

// startMachines starts the machines with their SSH servers.
func (r *running) startMachines(ctx context.Context, key ssh.Signer) error {
	programs, err := sshd.Build(ctx)
	r.atEnd(programs.Remove)
	if err != nil {
		return err
	}
	for _, m := range r.machines {
		folder := filepath.Join(r.folder, m.name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		o := sshd.Options{Address: net.JoinHostPort(m.address.String(), sshPort), Key: key}
		if m.locked {
			o.Key = nil // a new one
		}
		simulated, _, err := simnode.WithSSH(programs, folder, o, simnode.Options{
			Facts: m.facts(), Times: simnode.FastTimes(), Log: r.log, Serves: true, Registry: registrytest.NewFetcher(),
		})
		if err != nil {
			return fmt.Errorf("starting %s: %w", m.name, err)
		}
		r.atEnd(simulated.Close)
		fmt.Println("machine", m.name, m.address)
	}
	return nil
}

// startCluster starts the control plane, loads the objects, and starts what a cluster has around its nodes.
func (r *running) startCluster(ctx context.Context, key identity) error {
	list, err := manifests.Read(r.load...)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(controlplane.Options{
		Controllers: true, WithoutScheduler: true, Folder: filepath.Join(r.folder, "control-plane"),
	})
	if err != nil {
		return err
	}
	r.atEnd(plane.Stop)
	c, err := manifests.NewClient(plane.Config)
	if err != nil {
		return err
	}
	if err := createObject(ctx, c, list); err != nil {
		return err
	}
	if err := cluster.Connect(ctx, plane.Config, plane.ClientCA()); err != nil {
		return err
	}
	if !r.bare {
		if err := putKey(ctx, c, key); err != nil {
			return err
		}
	}
	owned := map[string]bool{}
	for _, m := range list {
		if m.GetKind() == "Machine" {
			owned[m.GetName()] = true
		}
	}
	r.background(ctx, func(ctx context.Context) error {
		return cluster.Approve(ctx, plane.Config, r.log, func(node string) bool { return owned[node] })
	})
	r.background(ctx, func(ctx context.Context) error { return cluster.Network(ctx, plane.Config, r.log) })
	return r.writeKubeconfigs(plane.Kubeconfig)
}

// createObject creates the objects of manifests.
func createObject(ctx context.Context, c client.Client, list []manifests.Manifest) error {
	namespaces, others := manifests.Namespaces(list)
	for _, m := range append(namespaces, others...) {
		// The garbage collector removes what has an owner that does not exist, and in manifests no owner has the right
		// UID.
		m.SetOwnerReferences(nil)
		if err := m.Create(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// putKey puts the key into the operator's Secret, in place of one that was loaded.
func putKey(ctx context.Context, c client.Client, key identity) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName},
		Data:       map[string][]byte{keys.SecretKey: key.pem},
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret.DeepCopy())); err != nil {
		return err
	}
	return c.Create(ctx, secret)
}

// background runs something until the end.
func (r *running) background(ctx context.Context, run func(context.Context) error) {
	ctx, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	var err error
	ended.Go(func() { err = run(ctx) })
	r.atEnd(func() error {
		stop()
		ended.Wait()
		return err
	})
}

// writeKubeconfigs writes the administrator's and, unless the cluster is bare, the operator's, with the permissions of
// its ServiceAccount.
func (r *running) writeKubeconfigs(admin string) error {
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return err
	}
	write := func(name string) error {
		file := filepath.Join(r.folder, name)
		fmt.Println(name, file)
		return clientcmd.WriteToFile(*config, file)
	}
	if err := write("kubeconfig"); err != nil || r.bare {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorAccount
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + gather.OperatorNamespace, "system:authenticated"}
	}
	return write("operator.kubeconfig")
}

// waitForStdin waits until stdin ends, or for a signal.
func waitForStdin(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}
