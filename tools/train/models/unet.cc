/// --model unet
#include "stagecraft/examples/models/unet.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/examples/models/model_size.h"
#include "stagecraft/tools/train/catalog/entries.h"
#include "stagecraft/tools/train/models/image_work.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDiffusionSteps = 1000;

std::int64_t blocks_in_all(const ModelSizes& sizes) {
  return 2 * sizes.whole("levels") * sizes.whole("blocks") + 1;
}

class UnetWork : public ImageWork {
 public:
  UnetWork(const TrainOptions& options, double most) : ImageWork(options, read_images, most) {}

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::UnetOptions sizes = model(choice);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(blocks_in_all(options_.sizes)),
                    least_activation_bytes(sizes, options_.microbatch_size),
                    2 * image_bytes() + sizeof(std::int64_t),
                    choice);
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    examples::Unet unet(model(choice));
    return compile_model(unet, examples::noise_loss, choice);
  }

 protected:
  /// Noise and times depend on (seed, step), as the images do.
  [[nodiscard]] WorkBatch draw(std::int64_t step,
                               std::int64_t size,
                               int microbatches) const override {
    const at::Tensor images = as_input(set_.pixels, examples_of(step, size * microbatches));
    at::Generator generator = generator_of(options_.seed, step, Drawn::Noise);
    const at::Tensor time = at::randint(0, kDiffusionSteps, {images.size(0)}, generator, at::kLong);
    const at::Tensor noise = at::randn(images.sizes(), generator, at::kFloat);
    return {{examples::noised(images, time, noise, kDiffusionSteps), time}, {noise}};
  }

 private:
  [[nodiscard]] examples::UnetOptions model(const ScheduleChoice& choice) const {
    if (choice.marked_stages() > blocks_in_all(options_.sizes)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--levels and --blocks make {} residual blocks, expected at least "
                              "{}, one for each of the schedule's stages; give more, or fewer "
                              "--ranks or --stages",
                              blocks_in_all(options_.sizes),
                              choice.marked_stages()));
    }
    return {.image = side(),
            .width = options_.sizes.whole("width"),
            .levels = options_.sizes.whole("levels"),
            .blocks = options_.sizes.whole("blocks"),
            .heads = options_.sizes.whole("heads"),
            .stages = choice.marked_stages(),
            .seed = options_.seed};
  }
};

constexpr std::int64_t kGroups = 8;  // of its norms
constexpr std::int64_t kMostLevels = 16;

std::string wrong_unet(const ModelSizes& sizes) {
  const std::int64_t image = sizes.whole("image"), levels = sizes.whole("levels"),
                     width = sizes.whole("width"), heads = sizes.whole("heads");
  if (levels > kMostLevels) {
    return fmt::format("--levels expects at most {}, found {}", kMostLevels, levels);
  }
  if (image % (std::int64_t{1} << (levels - 1)) != 0) {
    return fmt::format(
        "--image expects a size that {} levels can halve {} times without a rest, "
        "found {}",
        levels,
        levels - 1,
        image);
  }
  if (width % kGroups != 0) {
    return fmt::format("--width expects a multiple of {}, found {}", kGroups, width);
  }
  const std::int64_t lowest = width << (levels - 1);
  return lowest % heads == 0 ? std::string()
                             : fmt::format(
                                   "--heads expects a divisor of {}, the channels of the "
                                   "lowest level, found {}",
                                   lowest,
                                   heads);
}

}  // namespace

ModelEntry unet_entry() {
  return {.name = "unet",
          .summary = "a diffusion U-Net that learns to tell noise from images",
          .data = "images",
          .sizes = {{"image", kImageMeaning, 32},
                    {"width", "channels of the first level, twice as many each level on", 32},
                    {"levels", "resolutions, each half of the one before", 3},
                    {"blocks", "residual blocks of a level, down and up", 1},
                    {"heads", "attention heads of the lowest level", 4}},
          .wrong = wrong_unet,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<UnetWork>(options, most);
          },
          .may_branch = true};
}

}  // namespace stagecraft::tools
