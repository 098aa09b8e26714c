/// Runs a fuzz target on the files of its corpus, so that ordinary builds test the faults that
/// fuzzing has found.
///
///     replay FOLDER...        exit 0: all files passed; 2: no file
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "stagecraft/fuzz/target.h"

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(file.path(), std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      fmt::print("{}\n", file.path().filename().string());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++files;
    }
  }
  fmt::print("{} inputs\n", files);
  return files > 0 ? 0 : 2;
}
