package gather

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"wmco/bundle"
	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/machines"
)

// WorkerMachineSets reads the inputs of a new MachineSet: the existing MachineSets and the facts of the platform. They
// are empty on a platform without a Machine API. It returns an error if the source cannot be reached.
func WorkerMachineSets(ctx context.Context, r objects.Reader) (machines.Cluster, bundle.Findings, error) {
	set, err := r.Read(ctx, []objects.Want{
		{Group: groupConfig, Version: "v1", Kind: "Infrastructure", Names: []string{clusterName}},
		{Group: groupMachineConfig, Version: "v1", Kind: "ControllerConfig", Names: []string{controllerConfigName}, Optional: true},
		{Group: groupMachine, Version: "v1beta1", Kind: "MachineSet", Namespace: namespaceMachines, Optional: true},
	})
	if err != nil {
		return machines.Cluster{}, nil, &UnreachableError{fmt.Errorf("reading MachineSets: %w", err)}
	}
	g := &gatherer{objects: set.Objects, findings: set.Findings, cluster: render.Cluster{Origins: render.Origins{}}}
	infra := g.readInfrastructure()
	c := machines.Cluster{Platform: g.cluster.Platform, InfrastructureName: g.cluster.InfrastructureName}
	c.FailureDomains = failureDomains(infra.Spec.PlatformSpec)
	if infra.Status.PlatformStatus != nil {
		platformFacts(&c, *infra.Status.PlatformStatus)
	}
	for _, o := range g.listObjects(groupMachine, "MachineSet") {
		o.Ref.Group = o.Group
		c.Sets = append(c.Sets, machines.Source{Ref: o.Ref, JSON: o.JSON})
	}
	return c, g.findings.Sorted(), nil
}

func platformFacts(c *machines.Cluster, s configv1.PlatformStatus) {
	if s.AWS != nil {
		c.Region = s.AWS.Region
	}
	if s.GCP != nil {
		c.Region, c.Project = s.GCP.Region, s.GCP.ProjectID
	}
	if s.Azure != nil {
		c.ResourceGroup, c.NetworkResourceGroup = s.Azure.ResourceGroupName, cmp.Or(s.Azure.NetworkResourceGroupName, s.Azure.ResourceGroupName)
	}
}

func failureDomains(s configv1.PlatformSpec) []machines.FailureDomain {
	var list []machines.FailureDomain
	if s.VSphere != nil {
		for _, f := range s.VSphere.FailureDomains {
			t := f.Topology
			list = append(list, machines.FailureDomain{
				Name: f.Name, Zone: f.Zone, Server: f.Server, Datacenter: t.Datacenter, Datastore: t.Datastore, Folder: t.Folder,
				ResourcePool: t.ResourcePool, Networks: t.Networks,
			})
		}
	}
	if s.Nutanix != nil {
		for _, f := range s.Nutanix.FailureDomains {
			domain := machines.FailureDomain{Name: f.Name, Element: nutanixIdentifier(f.Cluster)}
			for _, subnet := range f.Subnets {
				domain.Subnets = append(domain.Subnets, nutanixIdentifier(subnet))
			}
			list = append(list, domain)
		}
	}
	return list
}

// nutanixIdentifier reads a UUID or a name, the two ways in which Nutanix identifies an element.
func nutanixIdentifier(r configv1.NutanixResourceIdentifier) machines.Identifier {
	var i machines.Identifier
	if r.UUID != nil && strings.EqualFold(string(r.Type), "uuid") {
		i.UUID = *r.UUID
	} else if r.Name != nil {
		i.Name = *r.Name
	}
	return i
}
