/// FileWork: trains a model from a file on the microbatches of a folder.
#pragma once

#include <utility>

#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/tensor_files/microbatch_files.h"
#include "stagecraft/tools/train/models/work.h"

namespace stagecraft::tools {

class FileWork : public Work {
 public:
  /// Reads the folder and the model, and checks that they fit.
  /// Errors: those of MicrobatchFiles, load_model, describe_inputs and read_cut; CompileCapture
  ///         with all parts of the model that are not supported.
  FileWork(const TrainOptions& options, double most);

  [[nodiscard]] TrainOptions settled(const TrainOptions& options) const override;
  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override;
  [[nodiscard]] Program compile(const ScheduleChoice& choice) override;
  [[nodiscard]] WorkBatch batch(std::int64_t step, const ScheduleChoice& choice) const override;
  [[nodiscard]] WorkBatch evaluation(const ScheduleChoice& choice) const override;
  [[nodiscard]] std::optional<std::int64_t> tokens(const ScheduleChoice& choice) const override;
  [[nodiscard]] std::vector<NamedTensor> all_names(std::vector<NamedTensor> trained) const override;

 private:
  /// A parameter or buffer of the file, in its order.
  struct Name {
    std::string name;
    std::string first;     ///< the first name of the same tensor, which the program uses
    at::Tensor untouched;  ///< of a buffer, in case the program does not have it
  };

  const TrainOptions options_;
  const MicrobatchFiles data_;
  std::optional<ModelFile> model_;  ///< until it is compiled
  std::vector<Name> names_;
  WorkBytes bytes_;
};

}  // namespace stagecraft::tools
