// Package warnings computes the warning that oc apply prints about a changed object.
//
//	request --> its object in the place of that in the cache --> inputs --> bundles of a sample of the nodes --.
//	            the cache as it is ------------------------------> inputs --> bundles ------------------------ Compare --> one sentence
//
// It never refuses a request, writes nothing, and neither logs nor keeps an object. What it cannot say in time it does
// not say. The operator needs nothing of it.
package warnings
