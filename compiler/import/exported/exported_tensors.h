/// ExportedTensors makes the parameters, buffers and constants of an archive of torch.export, as
/// tensors over the bytes of its records.
///
/// ET-1: tensors of one record share one storage. Those that also show the same part of it in the
///       same way are one tensor, under all their names (tied weights).
/// ET-2: a tensor shows no byte outside of its record. It shows no more bytes than the record has,
///       or than 64 MiB if it repeats them (stride 0).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/import/archive/archive.h"
#include "stagecraft/compiler/import/exported/exported_program.h"

namespace stagecraft::exported {

class ExportedTensors {
 public:
  /// Requires: `archive` outlives this object. `folder`: the folder of the records,
  /// "data/weights/".
  ExportedTensors(Archive& archive, Payloads payloads, std::string folder)
      : archive_(archive), payloads_(std::move(payloads)), folder_(std::move(folder)) {}

  /// Returns the tensor of a name.
  /// Errors: UsageFile for a name without payload, and for a tensor that breaks ET-2, is not dense
  /// or has an unknown size.
  [[nodiscard]] at::Tensor take(const std::string& fqn);
  [[nodiscard]] bool has(const std::string& fqn) const { return payloads_.contains(fqn); }

 private:
  struct Made {
    TensorFacts facts;
    at::Tensor tensor;
  };

  Archive& archive_;
  Payloads payloads_;
  std::string folder_;
  std::map<std::string, c10::Storage> storages_;   // by record
  std::map<std::string, std::vector<Made>> made_;  // by record
};

}  // namespace stagecraft::exported
