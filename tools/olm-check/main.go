// Command olm-check judges an OLM bundle and a file-based catalog with operator-framework's own validators: those that
// operator-sdk and opm call. `make olm-check` runs it. It is a module of its own, because the validators link several
// hundred others.
//
//	olm-check BUNDLE CATALOG
//
// ServiceMonitors and PrometheusRules are decoded strictly into the types of the Prometheus operator.
//
// It prints every finding. Two warnings are known: channel preview is the existing operator's, and rules about events
// and poddisruptionbudgets are taken for removed APIs, because rules name no version. Exit status: 0 no error (warnings
// are printed), 1 otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/operator-framework/operator-registry/pkg/lib/config"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubernetes is the version whose removed APIs are looked for.
const kubernetes = "1.36"

// validators are all but MultipleArchitecturesValidator, which pulls the image with docker.
func validators() interfaces.Validators {
	return validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator, validation.ObjectValidator,
		validation.OperatorGroupValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
	)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: olm-check BUNDLE CATALOG")
		os.Exit(1)
	}
	if err := errors.Join(checkBundle(os.Args[1], os.Stdout), checkCatalog(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "olm-check:", err)
		os.Exit(1)
	}
}

// checkBundle judges the format of a bundle and then its objects.
func checkBundle(folder string, out io.Writer) error {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	images := bundle.NewImageValidator(nil, logrus.NewEntry(silent), "bundle-objects")
	if err := errors.Join(images.ValidateBundleFormat(folder), images.ValidateBundleContent(filepath.Join(folder, "manifests"))); err != nil {
		return fmt.Errorf("checking the format of bundle %s: %w", folder, err)
	}
	read, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return fmt.Errorf("reading bundle %s: %w", folder, err)
	}
	objects := []any{read}
	for _, o := range read.Objects {
		if err := decodeMonitoring(o); err != nil {
			return err
		}
		objects = append(objects, o)
	}
	bad := 0
	for _, result := range validators().Validate(append(objects, map[string]string{"k8s-version": kubernetes})...) {
		for _, finding := range append(result.Errors, result.Warnings...) {
			fmt.Fprintf(out, "%s: %v\n", result.Name, finding)
		}
		bad += len(result.Errors)
	}
	if bad > 0 {
		return fmt.Errorf("bundle %s has %d errors", folder, bad)
	}
	return nil
}

// decodeMonitoring returns an error for a field that the Prometheus operator does not know.
func decodeMonitoring(o *unstructured.Unstructured) error {
	var into any
	switch o.GetKind() {
	case "ServiceMonitor":
		into = &monitoringv1.ServiceMonitor{}
	case "PrometheusRule":
		into = &monitoringv1.PrometheusRule{}
	default:
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		return fmt.Errorf("decoding %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// checkCatalog checks what opm validate checks, and whether the catalog is the same when it is read as a
// model.
func checkCatalog(folder string) error {
	ctx := context.Background()
	if err := config.Validate(ctx, os.DirFS(folder)); err != nil {
		return fmt.Errorf("checking catalog %s: %w", folder, err)
	}
	read, err := declcfg.LoadFS(ctx, os.DirFS(folder))
	if err != nil {
		return fmt.Errorf("reading catalog %s: %w", folder, err)
	}
	if len(read.Packages) != 1 || len(read.Bundles) != 1 {
		return fmt.Errorf("catalog %s has %d packages and %d bundles, not one of each", folder, len(read.Packages), len(read.Bundles))
	}
	return nil
}
