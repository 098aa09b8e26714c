/// Subject is a model that can be cut again, with a batch, whose plans are compared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft::bench {

struct Subject {
  std::string name;
  /// The name of the cut that is used by default: "even cut", by the model's markers; "balanced
  /// cut", as `stagecraft train` cuts models from files.
  std::string own_cut;
  int microbatches = 0;
  std::function<Program(const std::optional<Cut>& cut, int stages)> compile;
  Batch inputs, labels;
};

/// Returns all names that subject_named() knows, in the order of the table in docs/planning.md.
[[nodiscard]] std::vector<std::string> subject_names();

/// Returns a model of `stagecraft train`; "words", a Llama most of whose work is the head over a
/// large vocabulary; or "towers", a CLIP with four times as many patches of an image as bytes of a
/// text.
/// Errors: UsageArgument for another name.
[[nodiscard]] Subject subject_named(const std::string& name);

/// Returns a model of `stagecraft train` with these options in addition to its usual ones.
[[nodiscard]] Subject subject_of_model(const std::string& model,
                                       const std::vector<std::string>& options);

/// Returns a model from a file, with the microbatches of a folder. Errors: those of FileWork.
[[nodiscard]] Subject subject_of_file(const std::string& model, const std::string& data);

}  // namespace stagecraft::bench
