// Command kubelet prints the credentials with which a kubelet pulls an image for a Pod without an imagePullSecret: its own code reads config.json in its root
// directory, and runs the credential providers of its configuration.
//
//	kubelet ROOT-DIR CREDENTIAL-PROVIDER-CONFIG CREDENTIAL-PROVIDER-BIN-DIR IMAGE...
//
// It prints for each image a JSON line: a list of users and passwords, in the order in which they are tried (pkg/kubelet/images, EnsureImageExists).
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	"k8s.io/kubernetes/pkg/credentialprovider/secrets"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: kubelet ROOT-DIR CREDENTIAL-PROVIDER-CONFIG CREDENTIAL-PROVIDER-BIN-DIR IMAGES")
	}
	credentialprovider.SetPreferredDockercfgPath(args[0])
	if err := plugin.RegisterCredentialProviderPlugins(args[1], args[2], nil, nil); err != nil {
		return err
	}
	own, providers := credentialprovider.NewDefaultDockerKeyring(), plugin.NewExternalCredentialProviderDockerKeyring("default", "web", "1234", "default")
	keyring, err := secrets.MakeDockerKeyring(nil, credentialprovider.UnionDockerKeyring{own, providers})
	if err != nil {
		return err
	}
	for _, image := range args[3:] {
		list, _ := keyring.Lookup(image)
		if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
			return err
		}
	}
	return nil
}
