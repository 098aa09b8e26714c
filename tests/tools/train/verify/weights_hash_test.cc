#include "stagecraft/tools/train/verify/weights_hash.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {

TEST_CASE("the hash is SHA-256 over the raw bytes", "[tools][hash]") {
  // Holds the bytes of "abc", whose digest is the standard's first example (FIPS 180-4).
  const at::Tensor abc = at::tensor({97, 98, 99}, at::kByte);
  CHECK(weights_sha256({{"w", abc}}) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(weights_sha256({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("the hash does not depend on where one parameter ends or how it lies in memory",
          "[tools][hash]") {
  const at::Tensor abc = at::tensor({97, 98, 99}, at::kByte);
  CHECK(weights_sha256({{"v", abc.slice(0, 0, 1)}, {"w", abc.slice(0, 1, 3)}}) ==
        weights_sha256({{"w", abc}}));
  const at::Tensor square = at::arange(4, at::kFloat).reshape({2, 2});
  CHECK(weights_sha256({{"w", square.t().contiguous().t()}}) == weights_sha256({{"w", square}}));
  CHECK(weights_sha256({{"w", square.t()}}) != weights_sha256({{"w", square}}));
}

}  // namespace stagecraft::tools
