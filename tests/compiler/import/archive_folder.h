/// Reads the archives that PyTorch made (tests/data/models), each with the inputs of its steps and
/// the results of PyTorch's eager mode.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/microbatch_files.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::testing {

struct ArchiveFolder {
  std::filesystem::path path;
  double lr = 0.0;
  int microbatches = 0;
  std::string refused;         ///< why the model must be refused; empty if it trains
  std::vector<double> losses;  ///< by step
  std::vector<std::vector<double>> microbatch_losses;
  std::vector<NamedTensor> final;  ///< parameters, and buffers that changed

  [[nodiscard]] std::string name() const { return path.filename().string(); }
  [[nodiscard]] int steps() const { return static_cast<int>(losses.size()); }
  /// Returns the inputs, which are unpacked at the first call.
  [[nodiscard]] MicrobatchFiles data() const;
};

/// Returns every folder of tests/data/models with an expected.json, sorted by name. They are read
/// once for a process.
[[nodiscard]] const std::vector<ArchiveFolder>& archive_folders();

/// Returns the whole file. Fails the test if there is none.
[[nodiscard]] std::string file_bytes(const std::filesystem::path& path);

}  // namespace stagecraft::testing
