/// Shards of samples: any bytes give a folder whose rows can be read, or a refusal as a file. The
/// first byte is the form of the file: n for .npy, s for .safetensors, else tokens.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/shard_folder.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

/// FuzzedFolder is a folder with the one file of an input.
class FuzzedFolder {
 public:
  FuzzedFolder()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("stagecraft-fuzz-{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  FuzzedFolder(const FuzzedFolder&) = delete;
  FuzzedFolder& operator=(const FuzzedFolder&) = delete;
  ~FuzzedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path() const { return path_.string(); }

  void fill(std::string_view name, std::string_view bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove(entry.path());
    }
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

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
  static const FuzzedFolder folder;
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  folder.fill(data[0] == 'n' ? "a.npy" : data[0] == 's' ? "a.safetensors" : "a.bin", bytes);
  try {
    read_all(folder.path());
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::UsageFile, "a file is refused as such");
  }
  return 0;
}
