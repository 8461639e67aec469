// Package signatures asks the program image-verifier (payload/image-verifier) whether an image has the signatures that a policy demands. The program
// links the code with which Linux nodes decide it, which needs a hundred packages; it reads one question and writes one answer, and has neither
// credentials nor a network.
//
//	Question --stdin--> image-verifier (containers/image, signature.PolicyContext) --stdout--> Answer
package signatures
