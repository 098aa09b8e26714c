/// Shards of samples: any bytes give a folder whose rows can be read, or a refusal as a file. The
/// first byte is the form of the file: n for .npy, s for .safetensors, else tokens.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/shard_folder.h"
#include "stagecraft/fuzz/fuzzed_folder.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

void read_all(const std::string& folder) {
  sc::DataRequest request{.microbatch_size = 2};
  request.inputs.resize(2, {.name = "tokens", .known = true, .sizes = {-1, 3}});
  const sc::ShardFolder data(folder, request);
  sc::fuzz::require(data.steps() > 0, "a folder that is accepted has a step");
  for (const std::int64_t step : {std::int64_t{0}, data.steps() - 1, data.steps()}) {
    const auto arguments = data.microbatch(step, 0);
    sc::fuzz::require(arguments.size() == data.arguments().size(), "a sample has all arguments");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      sc::fuzz::require(arguments[i].sizes() == at::IntArrayRef(data.arguments()[i].sizes),
                        "an argument has the shape that was promised");
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sc::fuzz::FuzzedFolder folder;
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  folder.clear();
  folder.write(data[0] == 'n' ? "a.npy" : data[0] == 's' ? "a.safetensors" : "a.bin", bytes);
  try {
    read_all(folder.path());
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::UsageFile, "a file is refused as such");
  }
  return 0;
}
