// Command image-verifier decides whether an image has the signatures that a policy demands, with the code with which Linux nodes decide it. The
// image gateway starts it for each image; package signatures has its question and its answer.
//
// Without cgo, containers/image needs the build tag containers_image_openpgp: GOFLAGS=-tags=containers_image_openpgp.
package main
