/* Written by scores.py: results of scikit-learn 1.9.1 and PyTorch 2.9.1. */
#include <stdint.h>

enum { SCORE_SAMPLES = 61, SCORE_CLASSES = 7, SCORE_NUMBERS = 3 };
static const double class_precision[] = { 0.5, 0.44444444444444442, 0.54545454545454541, 0.5, 0.27272727272727271, 0,
    0 };
static const double class_recall[] = { 0.23076923076923078, 0.33333333333333331, 0.5, 0.5, 0.25, 0, 0 };
static const double class_f1[] = { 0.31578947368421051, 0.38095238095238093, 0.52173913043478259, 0.5,
    0.2608695652173913, 0, 0 };
static const double class_iou[] = { 0.1875, 0.23529411764705882, 0.35294117647058826, 0.33333333333333331,
    0.14999999999999999, 0, 0 };
static const int64_t class_support[] = { 13, 12, 12, 12, 12, 0, 0 };
static const int64_t confusion[] = { 3, 1, 1, 2, 2, 2, 2, 1, 4, 1, 2, 2, 2, 0, 1, 1, 6, 1, 2, 1, 0, 1, 1, 0, 6, 2, 1, 1,
    0, 2, 3, 1, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
static const int64_t worst_index[] = { 32, 46, 60, 58, 6 };
static const double worst_loss[] = { 4.7269532047225216, 3.775073254081692, 3.7644635137005595, 3.6657267499392816,
    3.6389894727899437 };
static const int64_t worst_predicted[] = { 4, 4, 1, 5, 3 };
static const double worst_probability[] = { 0.40589501496397684, 0.43822720331108667, 0.56739944993448377,
    0.44441641571900242, 0.64766673949028175 };
static const double summary[] = { 1.73425353070525, 0.36065573770491804, 0.63934426229508201, 0.3232323232323232,
    0.25915750915750918, 0.2827643643269665, 0.17986694677871148 };
static const double number_summary[] = { 0.50128885715928873, 0.88668919125390799, 0.63683277401116378,
    0.7080175542734013 };
