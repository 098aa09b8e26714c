/// WorkRequest holds the parts of which a Work is made: the model, its data, and how both are
/// drawn.
///
/// A command makes it from its options, and a worker from a message of the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/tools/train/work/model_sizes.h"

namespace stagecraft::tools {

/// ModelChoice is the model: one of the catalog, or a file.
struct ModelChoice {
  std::string name = "llama";       ///< from the catalog
  ModelSizes sizes;                 ///< of that model, with defaults filled in
  std::optional<std::string> file;  ///< replaces the model of the catalog
};

/// DataPlaces says where the data are. The model decides which of them it reads.
struct DataPlaces {
  std::string text = "/usr/share/common-licenses/GPL-3";
  std::optional<std::string> images;  ///< a folder; none: drawn ones
  std::optional<std::string> folder;  ///< of a model file's inputs
  double held_out = 0.0;              ///< fraction of the samples in that folder
};

struct WorkRequest {
  ModelChoice model;
  DataPlaces data;
  std::uint64_t seed = 0;
  Recompute recompute;                    ///< parts that run again before their backward
  std::optional<std::string> weights;     ///< file or folder to start from; none: drawn ones
  std::optional<std::string> checkpoint;  ///< has the weights to start from, instead
  bool evaluates = false;                 ///< the run needs batches for evaluations
  std::optional<std::string> evaluation;  ///< a model file's folder of these; none: held out
};

}  // namespace stagecraft::tools
