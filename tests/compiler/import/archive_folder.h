/// The archives that PyTorch made (tests/data/models), each with the inputs of its steps and what
/// PyTorch's eager mode made of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stagecraft/compiler/named_tensor.h"
#include "stagecraft/compiler/tensor_files/microbatch_files.h"

namespace stagecraft::testing {

struct ArchiveFolder {
  std::filesystem::path path;
  double lr = 0.0;
  int microbatches = 0;
  std::string refused;         ///< why the model must be; empty where it trains
  std::vector<double> losses;  ///< by step
  std::vector<std::vector<double>> microbatch_losses;
  MicrobatchFiles data;
  std::vector<NamedTensor> final;  ///< parameters, and buffers that changed

  [[nodiscard]] std::string name() const { return path.filename().string(); }
  [[nodiscard]] int steps() const { return static_cast<int>(losses.size()); }
};

/// Every folder of tests/data/models with an expected.json, sorted by name.
[[nodiscard]] std::vector<ArchiveFolder> archive_folders();

/// The whole file. Fails the test where there is none.
[[nodiscard]] std::string file_bytes(const std::filesystem::path& path);

}  // namespace stagecraft::testing
