/// The setup of a rank: accepted bytes encode to bytes that read back the same, and the setup can
/// be bound.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/zeros.h>

#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

/// Does the work of a worker with a setup before it allocates memory for weights.
void bind(const sc::RankSetup& setup) {
  try {
    (void)sc::bind_plan(setup.train, setup.stages);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::PlanInvalid, "a list is refused as such");
  }
  for (const auto& stage : setup.stages) {
    for (const sc::Chunk& chunk : stage->chunks) {
      (void)sc::ChunkInterpreter(*stage, chunk);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<at::Tensor> tensors;
  std::optional<sc::RankSetup> read;
  try {
    tensors.assign(sc::tensor_count(bytes), at::zeros({1}));
    read = sc::decode_setup(bytes, tensors);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::WireFormat || error.code() == sc::Errc::PlanInvalid,
                      "bytes are refused as such");
    return 0;
  }
  const sc::EncodedSetup again = sc::encode(*read);
  sc::fuzz::require(sc::encode(sc::decode_setup(again.bytes, again.tensors)).bytes == again.bytes,
                    "an encoded setup reads back the same");
  bind(*read);
  return 0;
}
