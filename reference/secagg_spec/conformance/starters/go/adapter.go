// The adapter of my-library: `secagg-spec conform -- ./adapter` asks it, and it asks the library.
//
// An adapter translates, and mends nothing: what the text refuses, the library is to refuse, and the adapter says with
// which code. A check that stands here alone would turn the report green, and the library would stay as it is.

package main

const Q = 4294967291 // the modulus that the library is made for; list all of them in the range of q below

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

	// Further operations are in spec/adapter.md, section 4; what is not declared here is answered by `unsupported`.
	adapter.Run()
}

// maskUpdate returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. The sum of two
// elements does not fit into 32 bits. Refuse, by an error such as Refuse("bad_param", "q is %d", q):
//
//	length_mismatch   an update and a mask of different lengths [LSA-03]
//	bad_param         an update and a mask without elements [LSA-01]
//	noncanonical      an element of the update or of the mask that is not below q [LSA-03]
//	bad_param         a q that the library is not made for, or that is no prime from 2 to 2^32 [MOD-01, MOD-02]
//
// A member of another form (type, hex digits, decimal digits) was refused before it came here.
func maskUpdate(q int64, update, mask []uint32) ([]uint32, error) {
	// --- write this
	return nil, Broken("write me: lightsecagg.mask in adapter.go")
	// --- until here
}
