// Package warnings computes the warning that oc apply prints about a changed object.
//
//	request --> its object in the place of that in the cache --> inputs --> bundles of a sample of the nodes --.
//	            the cache as it is ------------------------------> inputs --> bundles ------------------------ Compare --> one sentence
//
// It never refuses a request, writes nothing, and neither logs nor keeps an object. If it cannot finish in
// time, it prints no warning. The operator does not depend on it.
package warnings
