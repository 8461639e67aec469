// Package prerequisites has the controller that checks whether hosts can join, and applies what the operator may.
package prerequisites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/base/conditions"
	"wmco/controller/base/named"
	"wmco/controller/base/policies"
	"wmco/controller/configure"
	"wmco/controller/configure/checks"
	"wmco/controller/fleet"
	"wmco/controller/windowsnode/nodelist"
	"wmco/deploy/admission"
	"wmco/render/mirrors"
)

// Owner is the field manager of applied objects.
const Owner = "windows-machine-config-operator-join"

// CloudIdentitiesBound is the type of the condition that cloud-node-managers on Azure can change no other Node than
// their own.
const CloudIdentitiesBound = "CloudIdentitiesBound"

// Cluster reports what the cluster lacks, and adds what the operator may.
type Cluster struct {
	Checks   *configure.Checks
	Unjoined *configure.Unjoined
	Inputs   configure.Inputs
	Client   client.Client
	Policies policies.Policies
	// Decoded are the Windows Nodes of the Client, which reads from a cache; nil decodes them at each call.
	Decoded *nodelist.Cache
	// Say writes conditions where people look.
	Say        func(context.Context, []metav1.Condition) error
	Deployment *corev1.ObjectReference
	Events     events.EventRecorder
	Log        logr.Logger

	// saidOnce are the last messages of the conditions whose Event is written once, by type. Only one call of Reconcile
	// runs at a time.
	saidOnce map[string]string
	// ignored is what Windows nodes ignored when that was looked at last, ignoredAt is when, and ignoredMode that of mirrors.
	ignored     metav1.Condition
	ignoredAt   time.Time
	ignoredMode mirrors.Mode
}

// recheckCluster is how often the cluster is judged although nothing was seen to change.
const recheckCluster = time.Minute

// SetupWithManager has the cluster judged at the start. A host that cannot join any longer, or can again, is reported at
// once.
func (c *Cluster) SetupWithManager(m base.Manager) error {
	changed := base.NewSignal()
	c.Unjoined.OnChange(changed.WakeController)
	m.Kinds.OnChange(changed.WakeController)
	added, err := m.NewController("prerequisites", c, base.ParallelHosts)
	if err != nil {
		return err
	}
	again := changed.QueueSource(func(q base.Queue) { q.AddAfter(base.RequestsFor([]string{"all"})[0], reportDelay) })
	return errors.Join(added.Watch(base.AtStart()), added.Watch(again))
}

// reportDelay gathers hosts whose state changes at about the same time, before they are reported.
const reportDelay = time.Second

// Reconcile judges the cluster.
func (c *Cluster) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	inputs, err := c.Inputs(ctx)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the inputs: %w", err)
	}
	result, trusted, err := c.Checks.JudgeCluster(ctx, inputs)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wanted, ok := trusted.ConfigMapToApply(c.Checks.Login.Namespace); ok {
		if err := named.ForceApply(ctx, c.Client, &wanted, Owner); err != nil {
			return reconcile.Result{}, err
		}
	}
	list := append(conditionsOfChecks(result), secretWrites(ctx, c.Policies))
	if inputs.Cluster.Platform == bundle.PlatformAzure {
		list = append(list, c.bindCloudIdentities(ctx))
	}
	adopted, err := adoptionCondition(ctx, c.Decoded, c.Client, adoptionInputs{
		records: inputs.Records, clientCAs: inputs.Cluster.KubeletClientCA, serverCAs: inputs.Cluster.Bootstrap.CA,
		isWanted: func(annotations map[string]string) bool {
			return fleet.IsAdoptionWanted(inputs.Cluster.Settings, annotations)
		},
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	monitored, err := monitoringCondition(ctx, c.Checks.Live, c.Checks.Login.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	list = append(list, adopted)
	for _, condition := range list {
		c.warn(condition)
	}
	c.lookForIgnored(ctx, inputs.Cluster.Settings.Mirrors.Mode)
	for _, condition := range []metav1.Condition{monitored, c.ignored} {
		if condition.Type == "" {
			continue // it was not looked for yet
		}
		c.warnOnce(condition)
		list = append(list, condition)
	}
	again := recheckCluster
	if result.Again > 0 {
		again = min(again, result.Again)
	}
	// Events about hosts are on their own objects.
	return reconcile.Result{RequeueAfter: again},
		c.Say(ctx, append(list, c.Unjoined.HostsJoinedCondition(configure.ListHosts(inputs)),
			c.Unjoined.InstancesRemovedCondition()))
}

// lookForIgnored looks for what Windows nodes ignore, every recheckIgnored, and when the mode of mirrors has changed. Where that cannot be read, what was known
// stays, and it is tried with the next call: nothing else waits for it.
func (c *Cluster) lookForIgnored(ctx context.Context, mode mirrors.Mode) {
	now := c.Checks.Now()
	if !c.ignoredAt.IsZero() && mode == c.ignoredMode && now.Sub(c.ignoredAt).Abs() < recheckIgnored {
		return
	}
	condition, err := ignoredCondition(ctx, c.Checks.Live, mode)
	if err != nil {
		c.Log.Error(err, "looking for what Windows nodes ignore")
		return
	}
	c.ignored, c.ignoredAt, c.ignoredMode = condition, now, mode
}

// warn writes an Event of a condition that is not met.
func (c *Cluster) warn(condition metav1.Condition) {
	if condition.Status != metav1.ConditionTrue {
		c.Events.Eventf(c.Deployment, nil, corev1.EventTypeWarning, condition.Reason, "Check", "%s: %s", condition.Type,
			condition.Message)
	}
}

// warnOnce writes an Event of a condition that is not met, and another one only when its message has changed, or the
// operator starts again.
func (c *Cluster) warnOnce(condition metav1.Condition) {
	if c.saidOnce[condition.Type] == condition.Message {
		return
	}
	if c.saidOnce == nil {
		c.saidOnce = map[string]string{}
	}
	c.saidOnce[condition.Type] = condition.Message
	c.warn(condition)
}

func conditionsOfChecks(r checks.Result) []metav1.Condition {
	var list []metav1.Condition
	for _, c := range r.Conditions {
		condition := metav1.Condition{Type: string(c.Type), Status: metav1.ConditionTrue, Reason: c.Reason,
			Message: cmp.Or(c.Note, conditions.MessageAsExpected)}
		if !c.Met {
			condition.Status, condition.Message = metav1.ConditionFalse, c.Message
			if c.Fix != "" {
				condition.Message += "; fix: " + c.Fix
			}
		}
		condition.Message = published.Shorten(condition.Message)
		list = append(list, condition)
	}
	return list
}

// bindCloudIdentities has cloud-node-managers held to their own Nodes.
func (c *Cluster) bindCloudIdentities(ctx context.Context) metav1.Condition {
	if err := c.Policies.BindCloudIdentities(ctx); err != nil {
		return metav1.Condition{
			Type: CloudIdentitiesBound, Status: metav1.ConditionFalse, Reason: policies.ReasonPolicyNotApplied,
			Message: published.Shorten(fmt.Sprintf("cloud-node-managers get no certificate, because one of another "+
				"node could be used for any: %v; fix: apply the file cloud-node-manager.yaml of deploy/admission, "+
				"which has ValidatingAdmissionPolicy %s and its binding", err, admission.Name)),
		}
	}
	return conditions.AsExpected(CloudIdentitiesBound)
}

// secretWrites reports whether the operator's own Secrets are bound.
func secretWrites(ctx context.Context, p policies.Policies) metav1.Condition {
	if err := p.BindOperator(ctx); err != nil {
		return metav1.Condition{
			Type: policies.SecretWritesBound, Status: metav1.ConditionFalse, Reason: policies.ReasonPolicyNotApplied,
			Message: published.Shorten(fmt.Sprintf("no user data is written for new Machines, because whoever has "+
				"the operator's token could have the API server issue tokens of other ServiceAccounts: %v; fix: "+
				"apply the file operator.yaml of deploy/admission, which has ValidatingAdmissionPolicy %s and "+
				"its binding", err, admission.Operator)),
		}
	}
	return conditions.AsExpected(policies.SecretWritesBound)
}
