/// Subject: a model that can be cut anew and a batch for it, whose plans are compared.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/program.h"

namespace stagecraft::bench {

struct Subject {
  std::string name;
  /// How it is cut where nothing is said: "even cut", by the model's markers; "balanced cut", as
  /// `stagecraft train` cuts models from files.
  std::string own_cut;
  int microbatches = 0;
  std::function<Program(const std::optional<Cut>& cut, int stages)> compile;
  Batch inputs, labels;
};

/// All that subject_named() knows, in the order of the table in docs/planning.md.
[[nodiscard]] std::vector<std::string> subject_names();

/// A model of `stagecraft train`; "words", a Llama most of whose work is the head over a large
/// vocabulary; or "towers", a CLIP with four times as many patches of an image as bytes of a text.
/// Errors: UsageArgument for another name.
[[nodiscard]] Subject subject_named(const std::string& name);

/// A model of `stagecraft train` with these options beside its usual ones.
[[nodiscard]] Subject subject_of_model(const std::string& model,
                                       const std::vector<std::string>& options);

/// A model from a file, with the microbatches of a folder. Errors: those of FileWork.
[[nodiscard]] Subject subject_of_file(const std::string& model, const std::string& data);

}  // namespace stagecraft::bench
