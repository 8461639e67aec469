package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
)

// checkCloudConf reads cloud.conf with the names that acr-credential-provider has for its fields (sigs.k8s.io/cloud-provider-azure/pkg/azclient,
// ARMClientConfig and AzureAuthConfig). No other field may be there: some hold passwords.
func checkCloudConf(_ context.Context, contents []byte, _ Options) error {
	var config struct {
		Cloud, ResourceManagerEndpoint, TenantID, UserAssignedIdentityID string
		UseManagedIdentityExtension                                      bool
	}
	decoder := json.NewDecoder(bytes.NewReader(contents))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return err
	}
	if !config.UseManagedIdentityExtension {
		return errors.New("useManagedIdentityExtension is not set: the provider would give a client secret to registries")
	}
	return nil
}
