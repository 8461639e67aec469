package consumers

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// windowsPath is an absolute path on a drive. The programs resolve any other path relative to the kubeconfig.
var windowsPath = regexp.MustCompile(`^[A-Z]:\\`)

// checkKubeconfig reads a kubeconfig as every Kubernetes client does, down to the HTTP client that it makes from it.
// The certificates that it names are on the node, so they are replaced by others.
func checkKubeconfig(_ context.Context, contents []byte, o Options) error {
	// client-go ignores unknown fields.
	if err := yaml.UnmarshalStrict(contents, &clientcmdv1.Config{}); err != nil {
		return err
	}
	config, err := clientcmd.Load(contents)
	if err != nil {
		return err
	}
	pair, err := newPair(o.Scratch)
	if err != nil {
		return err
	}
	if err := replaceFiles(config, pair); err != nil {
		return err
	}
	if err := clientcmd.Validate(*config); err != nil {
		return err
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return err
	}
	_, err = rest.HTTPClientFor(client)
	return err
}

// replaceFiles replaces the paths of certificates in the kubeconfig by those of test certificates.
func replaceFiles(config *api.Config, pair string) error {
	var errs []error
	replace := func(name string, file *string) {
		if *file == "" {
			return
		}
		if !windowsPath.MatchString(*file) {
			errs = append(errs, fmt.Errorf("%s %q is not an absolute path on a node", name, *file))
		}
		*file = pair
	}
	for _, c := range config.Clusters {
		replace("certificate-authority", &c.CertificateAuthority)
	}
	for _, a := range config.AuthInfos {
		replace("client-certificate", &a.ClientCertificate)
		replace("client-key", &a.ClientKey)
	}
	return errors.Join(errs...)
}
