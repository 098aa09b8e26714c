#include "stagecraft/tools/train/models/unet.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/examples/models/unet.h"
#include "stagecraft/tools/train/work/image_work.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDiffusionSteps = 1000;

std::int64_t blocks_in_all(const ModelSizes& sizes) {
  return 2 * sizes.whole("levels") * sizes.whole("blocks") + 1;
}

class UnetWork : public ImageWork {
 public:
  UnetWork(const WorkRequest& request, double most) : ImageWork(request, read_images, most) {}

  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override {
    const examples::UnetOptions sizes = model(shape);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(blocks_in_all(request_.model.sizes)),
                    least_activation_bytes(sizes, shape.microbatch_size),
                    2 * image_bytes() + sizeof(std::int64_t),
                    shape);
  }

  [[nodiscard]] Program compile(const WorkShape& shape) override {
    examples::Unet unet(model(shape));
    return compile_model(unet, examples::noise_loss, shape);
  }

 protected:
  /// Noise and times depend on (seed, step), as the images do.
  [[nodiscard]] WorkBatch draw(std::int64_t step, std::int64_t samples) const override {
    const at::Tensor images = as_input(set_.pixels, examples_of(step, samples));
    at::Generator generator = generator_of(request_.seed, step, Drawn::Noise);
    const at::Tensor time = at::randint(0, kDiffusionSteps, {images.size(0)}, generator, at::kLong);
    const at::Tensor noise = at::randn(images.sizes(), generator, at::kFloat);
    return {{examples::noised(images, time, noise, kDiffusionSteps), time}, {noise}};
  }

 private:
  [[nodiscard]] examples::UnetOptions model(const WorkShape& shape) const {
    if (shape.marked_stages() > blocks_in_all(request_.model.sizes)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--levels and --blocks make {} residual blocks, expected at least "
                              "{}, one for each of the schedule's stages; give more, or fewer "
                              "--ranks or --stages",
                              blocks_in_all(request_.model.sizes),
                              shape.marked_stages()));
    }
    return {.image = side(),
            .width = size("width"),
            .levels = size("levels"),
            .blocks = size("blocks"),
            .heads = size("heads"),
            .stages = shape.marked_stages(),
            .seed = request_.seed};
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
        "--image expects a size that {} levels can halve {} times without remainder, "
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
  return {
      .name = "unet",
      .summary = "a diffusion U-Net that predicts the noise in images",
      .data = "images",
      .sizes = {{"image", kImageMeaning, 32},
                {"width", "channels at the first level; each further level has twice as many", 32},
                {"levels", "resolution levels; each halves the one before", 3},
                {"blocks", "residual blocks per level, on the way down and on the way up", 1},
                {"heads", "attention heads at the lowest level", 4}},
      .wrong = wrong_unet,
      .open = &open_as<UnetWork>,
      .may_branch = true};
}

}  // namespace stagecraft::tools
