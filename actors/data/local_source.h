/// StepSource is a source of batches that the ranks read themselves, so that the driver does not
/// have to send all data.
///
///   sc::register_source("digits", [](const std::string& folder) {     // first in main() of the
///     return std::make_unique<Digits>(folder);                        // driver and of workers
///   });
///   ...
///   trainer.step({.source = "digits", .argument = "/data/digits", .number = trainer.steps()});
///
/// A rank makes its source when it first reads from it, and keeps it until a step names another
/// source or another argument. It reads one batch ahead. Losses and weights equal those of
/// step(inputs, labels), bit by bit.
/// LB-1: a batch has the shape with which the program was compiled, and the same order of tensors.
/// LB-2: a source gives equal batches for equal numbers, in every process, in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/executor/step/local_batch.h"

namespace stagecraft {

/// BatchPart is the part of a batch that a rank needs.
struct BatchPart {
  std::int64_t batch = 0;  ///< LocalBatch::number
  int microbatch = 0;      ///< from 0
  int microbatches = 1;    ///< of the batch
  bool inputs = true;      ///< false: unused here, may be left out
  bool labels = true;      ///< likewise
};

/// StepSource gives batches by number.
/// Thread: one rank uses a source, on a thread of that rank. Several sources of one program may
/// work at the same time.
class StepSource {
 public:
  virtual ~StepSource() = default;

  /// Returns batch `number`, in the form that a caller gives to step(inputs, labels); a rank takes
  /// its share of it.
  /// Errors: any exception is the step's failure.
  [[nodiscard]] virtual LabeledBatch batch(std::int64_t number) = 0;

  /// Returns one microbatch of the batch, for sources that need not read the rest. The default
  /// returns nothing: the microbatch is cut out of batch() then. Errors: likewise.
  [[nodiscard]] virtual std::optional<LabeledBatch> part(const BatchPart& /*part*/) {
    return std::nullopt;
  }
};

/// SourceMaker makes the source of a rank. Several ranks of a program may call it at the same time.
using SourceMaker = std::function<std::unique_ptr<StepSource>(const std::string& argument)>;

/// Registers a source by name. Call it in main, before sc::worker_main() and before a trainer is
/// made. Thread: any. Errors: UsageArgument if the name or the maker is empty, or if the name is
/// taken.
void register_source(const std::string& name, SourceMaker make);

/// Makes a source. Errors: UsageArgument for a name that this program has not registered; those of
/// the maker.
[[nodiscard]] std::unique_ptr<StepSource> make_source(const std::string& name,
                                                      const std::string& argument);

}  // namespace stagecraft
