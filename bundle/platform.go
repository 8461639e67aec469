package bundle

// Platform is where the hosts of a cluster run, in the words of Infrastructure/cluster's status.platformStatus.type.
type Platform string

// The platforms that Windows nodes are supported on.
const (
	PlatformAWS     Platform = "AWS"
	PlatformAzure   Platform = "Azure"
	PlatformGCP     Platform = "GCP"
	PlatformVSphere Platform = "VSphere"
	PlatformNutanix Platform = "Nutanix"
	// PlatformNone has no cloud and no Machine API: every host is brought by the user.
	PlatformNone Platform = "None"
)

// Platforms returns all of them, in the order of documentation.
func Platforms() []Platform {
	return []Platform{PlatformAWS, PlatformAzure, PlatformGCP, PlatformVSphere, PlatformNutanix, PlatformNone}
}
