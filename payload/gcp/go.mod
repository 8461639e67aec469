module wmco/payload/gcp

go 1.26.0

// Go reads GODEBUG from the main module alone: this is what upstream's go line means.
godebug default=go1.22

// Upstream has it in a folder of its own repository, which the module proxy does not serve.
replace k8s.io/cloud-provider-gcp/providers => k8s.io/cloud-provider-gcp/providers v0.28.2

tool k8s.io/cloud-provider-gcp/cmd/auth-provider-gcp

require (
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/google/gofuzz v1.2.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/spf13/cobra v1.8.0 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
	k8s.io/apimachinery v0.30.0 // indirect
	k8s.io/cloud-provider v0.30.0 // indirect
	k8s.io/cloud-provider-gcp v0.0.0-20241115222652-d74b2e1d6653 // indirect
	k8s.io/cloud-provider-gcp/providers v0.0.0-00010101000000-000000000000 // indirect
	k8s.io/klog/v2 v2.120.1 // indirect
	k8s.io/kubelet v0.30.0 // indirect
	k8s.io/utils v0.0.0-20230726121419-3b25d923346b // indirect
	sigs.k8s.io/json v0.0.0-20221116044647-bc3834ca7abd // indirect
	sigs.k8s.io/structured-merge-diff/v4 v4.4.1 // indirect
)
