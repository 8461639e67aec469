package consumers

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/exporter-toolkit/web"
	"gopkg.in/yaml.v2"
)

// checkExporter reads the web configuration as windows_exporter does, through the same version of its toolkit, down to
// the TLS configuration, with a certificate made here.
func checkExporter(_ context.Context, contents []byte, o Options) error {
	var config web.Config
	if err := yaml.UnmarshalStrict(contents, &config); err != nil {
		return err
	}
	var errs []error
	for _, file := range []string{config.TLSConfig.TLSCertPath, config.TLSConfig.TLSKeyPath} {
		if !windowsPath.MatchString(file) {
			errs = append(errs, fmt.Errorf("%q is not an absolute path on a node", file))
		}
	}
	pair, err := newPair(o.Scratch)
	if err != nil {
		return err
	}
	config.TLSConfig.TLSCertPath, config.TLSConfig.TLSKeyPath = pair, pair
	_, err = web.ConfigToTLSConfig(&config.TLSConfig)
	return errors.Join(append(errs, err)...)
}
