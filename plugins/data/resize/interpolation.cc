#include "interpolation.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/_upsample_nearest_exact2d.h>

#include <array>
#include <numeric>
#include <vector>

#include "gantry/text.h"

namespace gantry {

void Interpolation::declare(Parameters& parameters) {
  parameters.add<std::string>("INTERPOLATION", "bilinear")
      .choices({"nearest", "bilinear", "bicubic"})
      .help("How values between pixels are found; bilinear and bicubic with antialiasing.");
}

Interpolation::Interpolation(const Config& config) : config_(config) {
  const std::string name = config.get<std::string>("INTERPOLATION");
  method_ = name == "nearest" ? Method::nearest : name == "bilinear" ? Method::bilinear : Method::bicubic;
}

at::Tensor Interpolation::resized(const std::string& key, const at::Tensor& pictures, int64_t height,
                                  int64_t width) const {
  if (pictures.size(-2) == height && pictures.size(-1) == width) return pictures;
  const at::ScalarType dtype = pictures.scalar_type();
  const bool computed_with = dtype == at::kByte || pictures.is_floating_point();
  if (method_ != Method::nearest && !computed_with) {
    throw config_.error("INTERPOLATION", cat("is ", config_.get<std::string>("INTERPOLATION"), ", but '", key,
                                             "' holds ", dtype == at::kBool ? "booleans" : "integers",
                                             ", which have nothing between them: use nearest"));
  }
  // Planes next to each other are what the operators take.
  std::vector<int64_t> shape = pictures.sizes().vec();
  const int64_t planes = std::accumulate(shape.begin() + 1, shape.end() - 2, int64_t{1}, std::multiplies<>());
  at::Tensor planar = pictures.reshape({shape[0], planes, shape.end()[-2], shape.end()[-1]});
  shape.end()[-2] = height;
  shape.end()[-1] = width;
  if (planar.numel() == 0) return planar.new_empty(shape);

  // The operators know these three; the others lose nothing on the way through a floating-point type.
  if (dtype != at::kByte && dtype != at::kFloat && dtype != at::kDouble) {
    planar = planar.to(pictures.is_floating_point() ? at::kFloat : at::kDouble);
  }
  return interpolated(planar, height, width).to(dtype).contiguous().view(shape);
}

at::Tensor Interpolation::interpolated(const at::Tensor& planes, int64_t height, int64_t width) const {
  const std::array<int64_t, 2> size = {height, width};
  switch (method_) {
    case Method::nearest:
      return at::_upsample_nearest_exact2d(planes, size);
    case Method::bilinear:
      return at::_upsample_bilinear2d_aa(planes, size, /*align_corners=*/false);
    case Method::bicubic:
      return at::_upsample_bicubic2d_aa(planes, size, /*align_corners=*/false);
  }
  return {};
}

}  // namespace gantry
