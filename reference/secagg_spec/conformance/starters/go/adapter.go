// The adapter of my-library: `secagg-spec conform -- ./adapter` asks it, and it calls the library.
//
// An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
// A check that exists only here would turn the report green without fixing the library.

package main

const Q = 4294967291 // a modulus that the library supports; list all of them in the range of q below

func main() {
	adapter := NewAdapter("my-library", "0.1.0")

	adapter.Operation("echo", Members{"data": JSON}, func(p Params) (Result, error) {
		return Result{"data": p["data"]}, nil
	})

	mask := adapter.Operation("lightsecagg.mask", Members{"q": Decimal, "update": Vector, "mask": Vector},
		func(p Params) (Result, error) {
			masked, err := maskUpdate(p["q"].(int64), p["update"].([]uint32), p["mask"].([]uint32))
			return Result{"masked": Pack(masked)}, err
		})
	mask.Declared["ranges"] = map[string]any{"q": map[string]any{"values": []int64{Q}}}

	// Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
	adapter.Run()
}

// maskUpdate returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. The sum of two
// elements does not fit into 32 bits. To refuse, return an error such as Refuse("bad_param", "q is %d", q):
//
//	length_mismatch   an update and a mask of different lengths [LSA-03]
//	bad_param         an update and a mask without elements [LSA-01]
//	noncanonical      an element of the update or of the mask that is not below q [LSA-03]
//	bad_param         a q that the library does not support, or that is not a prime from 2 to 2^32 [MOD-01, MOD-02]
//
// Members of the wrong form (type, hex digits, decimal digits) have already been refused.
func maskUpdate(q int64, update, mask []uint32) ([]uint32, error) {
	// --- write this
	return nil, Broken("write me: lightsecagg.mask in adapter.go")
	// --- until here
}
