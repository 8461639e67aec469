package published

import "wmco/bundle"

// PayloadPending reports whether executables have to be copied to a host before a bundle with them is published there: the bundle that
// is published is not made with this payload, and nobody has copied it yet. A node for which nothing is published gets its executables
// when it joins. An empty digest is no payload.
func PayloadPending(annotations map[string]string, payload bundle.Digest) bool {
	if payload == "" || annotations[PayloadAnnotation] == string(payload) {
		return false
	}
	d, err := DecodeDesired(annotations[DesiredAnnotation])
	return err == nil && d.Payload != payload
}
