package settings

import (
	"time"

	"wmco/applier/winhost/wait"
)

// Limits of calls into Windows that may hang. To turn a feature on, DISM may fetch it from Windows Update.
const (
	answerLimit  = 30 * time.Second
	featureLimit = 30 * time.Minute
)

// limitedImage is a featureImage whose calls are given up.
type limitedImage struct {
	image featureImage
	calls *wait.Calls
}

func (l limitedImage) listFeatures() (map[string]featureState, error) {
	return wait.Call(l.calls, l.image.listFeatures)
}

func (l limitedImage) enableFeature(name string) error {
	return l.calls.Do(featureLimit, func() error { return l.image.enableFeature(name) })
}

func (l limitedImage) disableFeature(name string) error {
	return l.calls.Do(featureLimit, func() error { return l.image.disableFeature(name) })
}

// limitedDefender is Defender whose calls are given up.
type limitedDefender struct {
	defender defender
	calls    *wait.Calls
}

func (l limitedDefender) listExclusions() ([]string, error) {
	return wait.Call(l.calls, l.defender.listExclusions)
}

func (l limitedDefender) addExclusion(program string) error {
	return l.calls.Do(answerLimit, func() error { return l.defender.addExclusion(program) })
}

func (l limitedDefender) removeExclusion(program string) error {
	return l.calls.Do(answerLimit, func() error { return l.defender.removeExclusion(program) })
}

// limitedFirewall are firewall rules whose calls are given up.
type limitedFirewall struct {
	rules firewallRules
	calls *wait.Calls
}

func (l limitedFirewall) findRule(name string) (rule firewallRule, ok bool, err error) {
	type found struct {
		rule firewallRule
		ok   bool
	}
	f, err := wait.Call(l.calls, func() (found, error) {
		rule, ok, err := l.rules.findRule(name)
		return found{rule, ok}, err
	})
	return f.rule, f.ok, err
}

func (l limitedFirewall) addRule(rule firewallRule) error {
	return l.calls.Do(answerLimit, func() error { return l.rules.addRule(rule) })
}

func (l limitedFirewall) removeRule(name string) error {
	return l.calls.Do(answerLimit, func() error { return l.rules.removeRule(name) })
}
