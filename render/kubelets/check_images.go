package kubelets

import (
	"regexp"
	"strings"
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// checkImageRemoval is about pulls of images and when they are removed.
func (c *check) checkImageRemoval() {
	k := c.config
	high, low := orElse(k.ImageGCHighThresholdPercent, 85), orElse(k.ImageGCLowThresholdPercent, 80)
	if low >= high {
		c.addConflict(
			"imageGCLowThresholdPercent", "imageGCHighThresholdPercent",
			"imageGCLowThresholdPercent %d is not below imageGCHighThresholdPercent %d", low, high,
		)
	}
	if parallel := orElse(k.MaxParallelImagePulls, 1); parallel > 1 && orElse(k.SerializeImagePulls, false) {
		c.addConflict(
			"maxParallelImagePulls", "serializeImagePulls",
			"maxParallelImagePulls %d needs serializeImagePulls: false", parallel,
		)
	}
	c.checkImageAges(k.ImageMinimumGCAge.Duration, k.ImageMaximumGCAge.Duration)
}

func (c *check) checkImageAges(least, most time.Duration) {
	const since = 36
	if least < 0 && c.kubelet.minorVersion() >= since {
		c.addProblem("imageMinimumGCAge", "%s is negative", least)
	}
	if least == 0 {
		least = 2 * time.Minute
	}
	switch {
	case most < 0:
		c.addProblem("imageMaximumGCAge", "%s is negative", most)
	case most > 0 && most <= least:
		c.addConflict(
			"imageMaximumGCAge", "imageMinimumGCAge", "imageMaximumGCAge %s is not longer than imageMinimumGCAge %s",
			most, least,
		)
	}
	if most != 0 {
		c.requireGate("imageMaximumGCAge", "ImageMaximumGCAge")
	}
}

// checkPreloadedImages is about images that are there before a Pod pulls them.
func (c *check) checkPreloadedImages() {
	const policyField, listField, gate = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist", "KubeletEnsureSecretPulledImages"
	policy, list := string(c.config.ImagePullCredentialsVerificationPolicy), c.config.PreloadedImagesVerificationAllowlist
	if policy != "" {
		c.requireGate(policyField, gate)
	}
	if len(list) > 0 {
		c.requireGate(listField, gate)
	}
	if !c.isOn(gate) {
		return
	}
	c.requireChoice(policyField, policy, "NeverVerify NeverVerifyPreloadedImages NeverVerifyAllowlistedImages AlwaysVerify")
	if len(list) > 0 && policy != string(kubeletv1beta1.NeverVerifyAllowlistedImages) {
		c.addConflict(listField, policyField, "%s needs %s: %s", listField, policyField, kubeletv1beta1.NeverVerifyAllowlistedImages)
		return
	}
	for _, pattern := range list {
		if !isAllowlistPattern(pattern) {
			c.addProblem(listField, "%q is neither an image without tag and digest nor a prefix of one that ends with /*", pattern)
		}
	}
}

const (
	hostPart = `[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`
	pathPart = `[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*`
	maxName  = 255
)

// imageName is the name of an image as github.com/distribution/reference reads it, without a tag and a digest.
var imageName = regexp.MustCompile(`^((` + hostPart + `(\.` + hostPart + `)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?/)?` + pathPart + `(/` + pathPart + `)*$`)

func isAllowlistPattern(pattern string) bool {
	if pattern != strings.TrimSpace(pattern) {
		return false
	}
	if prefix, ok := strings.CutSuffix(pattern, "/*"); ok {
		return prefix != "" && !strings.Contains(prefix, "*")
	}
	return len(pattern) <= maxName && imageName.MatchString(pattern)
}
